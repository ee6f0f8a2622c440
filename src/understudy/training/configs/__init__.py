"""Named settings that ship with the package, as TOML files: what `train --config NAME` takes."""
