# A file for each part, readable by one rename, overwritten by a second run.
for part in input/*; do
    name=${part#input/}
    while read -r line; do echo "$line"; done < "$part" > "store/.$name"
    mv -f "store/.$name" "store/$name"
done
