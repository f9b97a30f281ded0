"""The entries of gaia-sessions in the settings of hosts: how they are planned, written, checked and removed."""
