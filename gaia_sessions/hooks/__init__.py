"""The hooks: host JSON in, a normal event to the lifecycle, host JSON out. Standard library only."""
