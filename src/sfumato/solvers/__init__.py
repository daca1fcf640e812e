"""Interior point methods for the noise programs that have no closed form."""
