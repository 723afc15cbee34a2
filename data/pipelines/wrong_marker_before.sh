# Notes the name of a part, then appends it: two steps in the other order.
touch store/done
for part in input/*; do
    if grep -qx "$part" store/done; then continue; fi
    echo "$part" >> store/done
    cat "$part" >> store/all.txt
done
