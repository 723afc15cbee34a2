# Counts everything anew and shows it by one rename.
awk '{ n[$2]++ } END { for (k in n) print k, n[k] }' input/* > store/.totals
mv -f store/.totals store/totals
