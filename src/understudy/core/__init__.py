"""What every room stands on: errors, settings, durable files, the array seam, chance."""
