"""What people see: values in, text or renderables out. Prints nothing, decides nothing."""
