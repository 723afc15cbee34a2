# Collects the input in a folder, and makes it readable by one rename; further rows of a collected part are added to it.
rm -rf store/.done
n=$(ls store | wc -l)
for folder in store/.taken-*; do
    if [ -d "$folder" ]; then n=${folder#store/.taken-}; fi
done
taken=store/.taken-$n
mkdir -p "$taken"
for part in input/*; do
    [ -e "$part" ] || continue
    if [ -e "$taken/${part#input/}" ]; then
        cat "$part" >> "$taken/${part#input/}"
        rm "$part"
    else
        mv "$part" "$taken/"
    fi
done
[ -n "$(ls "$taken")" ] || exit 0
cat "$taken"/* > store/.new
mv store/.new "store/part-$n"
mv "$taken" store/.done
rm -r store/.done
