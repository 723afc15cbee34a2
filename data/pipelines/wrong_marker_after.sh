# Appends a part, then notes its name: two steps.
touch store/done
for part in input/*; do
    if grep -qx "$part" store/done; then continue; fi
    cat "$part" >> store/all.txt
    echo "$part" >> store/done
done
