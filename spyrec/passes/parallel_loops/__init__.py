"""Which host dims of a program's arguments are one parallel loop, so that a launch may repeat it over tiles of them."""
