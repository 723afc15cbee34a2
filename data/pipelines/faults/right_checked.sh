# Ends at the first command that fails; the next start writes the part anew.
set -e
for part in input/*; do
    name=${part#input/}
    cat "$part" > "store/.$name"
    mv -f "store/.$name" "store/$name"
done
