"""What every room uses: errors, config, durable files, arrays over both engines, random numbers."""
