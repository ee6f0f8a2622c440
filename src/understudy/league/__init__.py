"""The league: opponents and their snapshots, ratings, and who meets whom."""
