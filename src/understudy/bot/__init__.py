"""What a bot imports: `Understudy`, its matches, and the threads beside them."""
