# Data files that a second run overwrites, and a list of them that a second run makes longer.
for part in input/*; do
    name=${part#input/}
    cat "$part" > "store/.$name"
    mv -f "store/.$name" "store/$name"
    echo "$name" >> store/manifest
done
