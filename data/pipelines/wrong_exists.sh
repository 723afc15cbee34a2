# Takes a file that is there for one that is complete.
for part in input/*; do
    name=store/${part#input/}
    if [ -e "$name" ]; then continue; fi
    while read -r line; do echo "$line"; done < "$part" > "$name"
done
