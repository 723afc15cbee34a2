# Publishes a part whether or not it could be written: a shell goes on after a command that failed.
for part in input/*; do
    name=${part#input/}
    cat "$part" > "store/.$name"
    mv -f "store/.$name" "store/$name"
done
