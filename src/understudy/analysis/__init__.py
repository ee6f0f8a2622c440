"""What an agent believes about its opponent: latents, probes, ablations, plots."""
