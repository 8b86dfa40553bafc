"""What every change of a support is worth: additions, removals and swaps, in every form."""
