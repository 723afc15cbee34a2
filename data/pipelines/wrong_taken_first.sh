# Takes a part out of the input, then appends it: offsets before output.
mkdir -p store/work
for part in input/*; do
    if [ ! -e "$part" ]; then break; fi
    mv "$part" store/work/
    cat "store/work/${part#input/}" >> store/all.txt
done
