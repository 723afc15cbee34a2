# One rename takes a part out of the input and makes it readable; a log tells that it did.
for part in input/*; do
    if [ -e "$part" ]; then
        mv "$part" store/
        echo "took $part" >> store/job.log
        echo "that was $part" >> store/job.log
    fi
done
