#!/bin/sh
# run_deb.sh -- `make deb-test`: Debian's packages are made, checked by lintian, installed, used by a newcomer and purged.
#
# As root, with debootstrap and a network. Kept for the next run: build/trixie/base, a bare Debian, and build/trixie/make, one
# with what the build needs; they are used from build/trixie/use, a copy of the bare one. build/trixie/*.deb are the packages.
set -eu
suite=trixie

say() { printf '\n== %s s: %s\n' $(($(date +%s) - BEGUN)) "$*"; }
die() { printf 'run_deb.sh: %s\n' "$*" >&2; exit 1; }
apt() { DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; die "apt-get $*"; }; }

# ---- on this machine -------------------------------------------------------------------------------------------------

main() {
    top=build/$suite
    [ "$(id -u)" = 0 ] || die "run this as root: it makes chroots"
    command -v debootstrap >/dev/null || die "no debootstrap: apt install debootstrap"
    mkdir -p $top
    if [ ! -e $top/base/complete ]; then
        say "debootstrap $suite"
        rm -rf $top/base
        debootstrap --variant=minbase $suite $top/base >$top/debootstrap.log || die "debootstrap failed: see $top/debootstrap.log"
        touch $top/base/complete
    fi
    [ -e $top/make ] || cp -a $top/base $top/make
    rm -rf $top/use $top/make/src $top/make/sdist
    rm -f $top/*.deb
    python3 packaging/backend.py sdist $top/make/sdist
    mkdir $top/make/src
    tar xf $top/make/sdist/*.tar.gz -C $top/make/src
    within make
    cp $top/make/src/dyntrace_*.deb $top/make/src/python3-dyntrace_*.deb $top
    cp -a $top/base $top/use
    cp $top/*.deb $top/use
    within use
    rm -rf $top/use
    say "done"
    ls -l $top/*.deb
}

# What it mounts is gone when it ends, and so is every process.
within() {
    root=$top/$1
    cp -L /etc/resolv.conf "$root/etc"
    cp "$0" "$root/run_deb.sh"
    unshare --mount --pid --fork --kill-child sh -euc 'mount -t proc proc "$1/proc"; mount -t tmpfs tmpfs "$1/dev/shm"
        mount -t devpts -o ptmxmode=666,newinstance devpts "$1/dev/pts"; ln -sf pts/ptmx "$1/dev/ptmx"
        exec chroot "$1" env -i HOME=/root LANG=C.UTF-8 BEGUN="$BEGUN" PATH=/usr/sbin:/usr/bin:/sbin:/bin sh /run_deb.sh "$2"' sh "$root" "$1"
}

# ---- in a chroot -----------------------------------------------------------------------------------------------------

make_packages() {
    cd /src/*/
    say "what the build needs"
    apt update
    apt install -y --no-install-recommends build-essential lintian
    apt build-dep -y --no-install-recommends ./
    say "dpkg-buildpackage -b"
    dpkg-buildpackage -b -us -uc >/tmp/build.log 2>&1 || { tail -40 /tmp/build.log; die "dpkg-buildpackage failed"; }
    say "lintian"
    lintian --allow-root --fail-on error,warning ../*.changes
    [ -z "$(./debian/rules clean >/dev/null; find . -newer ../*.changes -type f)" ] || die "debian/rules clean leaves files"
}

files() {
    find / -xdev \( -path /proc -o -path /var/cache -o -path /var/lib/apt -o -path /var/log -o -path /home \) -prune -o -print | sort
}

use_packages() {
    say "a user's Debian, without dyntrace"
    apt update
    apt install -y --no-install-recommends bash-completion man-db python3-pytest
    useradd -m newcomer
    files >/var/log/before
    say "apt install"
    apt install -y ./*.deb
    say "a newcomer"
    su newcomer -c "cd && sh /run_deb.sh newcomer"
    apt remove -y python3-dyntrace
    su newcomer -c "dyntrace report ~/words.db >/dev/null" || die "dyntrace does not read traces by itself"
    said=$(dyntrace run -c pass 2>&1) && die "it records without python3-dyntrace"
    [ "${said##*: }" = "apt install --reinstall python3-dyntrace" ] || die "said without python3-dyntrace: $said"
    say "apt purge"
    apt purge -y --auto-remove dyntrace python3-dyntrace
    files | diff /var/log/before - || die "the lines above differ after apt purge"
    [ -z "$(ls /dev/shm)" ] || die "left in /dev/shm: $(ls /dev/shm)"
}

# expect PATTERN COMMAND...: it succeeds, and prints that.
expect() {
    pattern=$1
    shift
    printf '$ %s\n' "$*"
    "$@" >said 2>&1 || { cat said; die "$1 ends with an error"; }
    [ -z "$pattern" ] || grep -q -e "$pattern" said || { cat said; die "does not print $pattern"; }
}

newcomer() {
    export TMPDIR="$HOME" TERM=xterm MANPAGER=cat
    docs=/usr/share/doc/dyntrace
    expect "different" dyntrace run -o words.db $docs/examples/wordcount.py
    expect "words.*examples/wordcount.py" dyntrace report words.db --limit 0
    expect "" dyntrace run -o shapes.db $docs/examples/shapes.py
    expect "What would have helped" dyntrace why total shapes.db
    expect "shapes.db" dyntrace tui shapes.db --dump --screen 100x24
    expect "/usr/bin/python3: CPython 3" dyntrace doctor
    expect "" python3 -m dyntrace run -o module.db -c pass
    expect "" python3 -c "import dyntrace
with dyntrace.record('record.db'): pass"
    printf 'import pytest\n@pytest.mark.dyntrace(max_recompiles=0)\ndef test(): pass\n' >test_it.py
    expect "1 passed" python3 -m pytest --strict-markers -p no:cacheprovider --dyntrace-dir traces
    expect "test_it" dyntrace report traces/*.db
    expect "dyntrace" python3 -c "from importlib.metadata import version; print('dyntrace', version('dyntrace-recorder'))"
    expect "NAME" man dyntrace
    expect "dyntrace" bash -ic 'complete -p dyntrace 2>/dev/null || { . /usr/share/bash-completion/bash_completion; _comp_load dyntrace; complete -p dyntrace; }'
    expect "trace.sql" ls $docs/schemas
}

case ${1:-} in
make | use) "${1}_packages" ;;
newcomer) newcomer ;;
*) BEGUN=$(date +%s) && export BEGUN && main ;;
esac
