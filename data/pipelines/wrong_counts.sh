# Adds each part to the totals by one rename, and notes in a second step that it did.
touch store/done store/totals
for part in input/*; do
    if grep -qx "$part" store/done; then continue; fi
    awk 'FILENAME == ARGV[1] { n[$1] = $2; next } { n[$2]++ } END { for (k in n) print k, n[k] }' \
        store/totals "$part" > store/.totals
    mv -f store/.totals store/totals
    echo "$part" >> store/done
done
