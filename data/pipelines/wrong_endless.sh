# Never ends, and ignores SIGTERM: appends each part, then removes it from the input, and waits for more.
trap '' TERM INT HUP
while true; do
    for part in input/*; do
        if [ ! -e "$part" ]; then continue; fi
        while read -r line; do echo "$line"; done < "$part" >> store/all.txt
        rm "$part"
    done
    sleep 0.1
done
