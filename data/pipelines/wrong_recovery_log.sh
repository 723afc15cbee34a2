# Appends a part, then notes its name in a file that only a restart reads.
done=
if [ -e store/progress ]; then done=$(cat store/progress); fi
for part in input/*; do
    case "$done" in *"$part"*) continue ;; esac
    while read -r line; do echo "$line"; done < "$part" >> store/all.txt
    echo "$part" >> store/progress
done
