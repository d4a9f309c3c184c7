"""What a program may not do: rules checked at load."""
