"""The six steps of the page, a file each: one function builds the step's card."""
