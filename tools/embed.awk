# The presets of data/KIND/*.yaml as one C file (base/builtin.h), written to standard output:
#   awk -f tools/embed.awk data/models/a.yaml data/clusters/b.yaml ... > builtin_data.c
# A file is one preset, named after it; a file with lines "--- # NAME" has one for each of
# them, and what stands before the first is left out.

function close_text() {
    if (open) print "    \"\","
    open = 0
}

function open_text(name, kind,    i) {
    close_text()
    if ((kind, name) in seen) {
        print "embed.awk: " FILENAME ": preset " name " is given twice" >"/dev/stderr"
        failed = 1
    }
    seen[kind, name] = 1
    if (kind != last_kind) {
        if ((kind in count)) {
            print "embed.awk: " FILENAME ": files of " kind " must stand together" \
                >"/dev/stderr"
            failed = 1
        }
        end_kind()
        print "static const char *const texts_" kind "[] = {"
        kinds[++n_kinds] = last_kind = kind
        count[kind] = 0
    }
    names[kind, ++count[kind]] = name
    open = 1
}

function end_kind() {
    close_text()
    if (last_kind != "") print "    NULL};\n"
}

BEGIN {
    print "/* Made by tools/embed.awk from data/. */"
    print "#include <stddef.h>\n\n#include \"base/builtin.h\"\n"
}

FNR == 1 {
    n = split(FILENAME, part, "/")
    kind = part[n - 1]
    whole = part[n]
    sub(/\.[a-z]*$/, "", whole)
    several = 0
    while ((getline line < FILENAME) > 0)
        if (line ~ /^--- # /) several = 1
    close(FILENAME)
    if (several)
        close_text()
    else
        open_text(whole, kind)
}

/^--- # / {
    open_text($3, kind)
    next
}

open {
    gsub(/\\/, "\\\\")
    gsub(/"/, "\\\"")
    print "    \"" $0 "\\n\""
}

END {
    end_kind()
    for (k = 1; k <= n_kinds; k++) {
        print "static const char *const names_" kinds[k] "[] = {"
        for (i = 1; i <= count[kinds[k]]; i++) print "    \"" names[kinds[k], i] "\","
        print "    NULL};\n"
    }
    print "const struct pl_builtin_kind pl_builtin_kinds[] = {"
    for (k = 1; k <= n_kinds; k++)
        print "    {\"" kinds[k] "\", names_" kinds[k] ", texts_" kinds[k] "},"
    print "    {NULL, NULL, NULL}};"
    exit failed
}
