# Appends a part, then removes it from the input: output before offsets.
for part in input/*; do
    if [ ! -e "$part" ]; then break; fi
    cat "$part" >> store/all.txt
    rm "$part"
done
