"""What people look at: a match of brawl, in the terminal and as pictures."""
