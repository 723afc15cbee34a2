# Never ends: takes each part of the input by one rename, and waits for more.
while true; do
    for part in input/*; do
        if [ -e "$part" ]; then mv "$part" store/; fi
    done
    sleep 0.1
done
