"""What real adversaries achieve: one file for each kind, and an audit that lets all of them try."""
