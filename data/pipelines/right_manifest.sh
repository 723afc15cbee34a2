# Data files first, then one rename of the list that makes all of them readable.
list=
for part in input/*; do
    name=${part#input/}
    cat "$part" > "store/$name.data"
    list="$list $name.data"
    echo $list > store/.manifest
    mv -f store/.manifest store/manifest
done
