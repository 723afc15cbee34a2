# Takes a part out of the input, then appends it: offsets before output.
mkdir -p store/taken
for part in input/*; do
    if [ ! -e "$part" ]; then break; fi
    mv "$part" store/taken/
    cat "store/taken/${part#input/}" >> store/all.txt
done
