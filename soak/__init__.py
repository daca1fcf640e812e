"""Random trials for as long as one likes: every claim that sfumato makes in them is checked again, independently.

``make soak MINUTES=10``; docs/contributing.md says how a case that was found is run again.
"""
