"""What a person sees of a recorded run. A page takes what was recorded."""
