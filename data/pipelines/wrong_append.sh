# Appends every part of the input; nothing remembers what is there already.
for part in input/*; do
    while read -r line; do echo "$line"; done < "$part" >> store/all.txt
done
