"""The noise programs: each finds the least noise that keeps one kind of promise."""
