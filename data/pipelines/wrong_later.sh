# Writes each part under its name and the day's number; the start that finds a day done closes it, the next begins another.
day=1
while [ -e store/closed-$day ]; do day=$((day + 1)); done
if [ -e store/done-$day ]; then
    mv store/done-$day store/closed-$day
    exit 0
fi
for part in input/*; do
    cp "$part" store/.staged
    mv store/.staged "store/part-$day-${part##*-}"
done
: > store/done-$day
