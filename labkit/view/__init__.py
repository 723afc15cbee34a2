"""Show runs and simulators as text, pages and pictures. This package only draws results that others computed."""
