# One rename takes a part out of the input and makes it readable.
for part in input/*; do
    if [ -e "$part" ]; then mv "$part" store/; fi
done
