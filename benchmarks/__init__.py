"""Commands that measure; every claim about speed is a ratio printed by one of them."""
