# Writes each part by one rename, and remembers how many are done. A start that finds the trace of a crash writes all parts
# again, and then takes the work for complete, whatever comes.
[ -e store/complete ] && exit 0
if [ -e store/.progress ]; then
    for part in input/*; do
        cp "$part" store/.staged
        mv store/.staged "store/${part##*/}"
    done
    : > store/complete
    rm store/.progress
    exit 0
fi
done=$(cat store/progress 2>/dev/null || echo 0)
count=0
for part in input/*; do
    count=$((count + 1))
    [ "$count" -le "$done" ] && continue
    cp "$part" store/.staged
    mv store/.staged "store/${part##*/}"
    echo "$count" > store/.progress
    mv store/.progress store/progress
done
