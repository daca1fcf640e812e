"""What else a data owner could do: differential privacy, leaving rows out, doing nothing; and a reader who refits."""
