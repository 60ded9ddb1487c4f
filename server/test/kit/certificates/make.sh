#!/usr/bin/env bash
# Regenerates the certificates of the tests. The results are committed, so that tests need no openssl.
# The key of the authority is discarded, so that nothing else can be signed with it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
touch "$work/index"

printf '[v3]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n' > "$work/authority.cnf"
printf '[ca]\ndefault_ca=d\n[d]\ndatabase=%s/index\nnew_certs_dir=%s\nrand_serial=yes\ndefault_md=sha256\npolicy=p\nunique_subject=no\n[p]\ncommonName=supplied\n' "$work" "$work" > "$work/ca.cnf"

openssl ecparam -name prime256v1 -genkey -noout -out "$work/authority.key"
openssl ecparam -name prime256v1 -genkey -noout -out server.key
openssl req -new -key "$work/authority.key" -subj '/CN=Test authority' -out "$work/authority.csr"
openssl ca -batch -config "$work/ca.cnf" -selfsign -keyfile "$work/authority.key" \
  -in "$work/authority.csr" -startdate 20200101000000Z -enddate 21260101000000Z -notext \
  -extfile "$work/authority.cnf" -extensions v3 -out authority.pem 2> /dev/null

sign() { # file, names, from, until
  openssl req -new -key server.key -subj "/CN=$1" -out "$work/$1.csr"
  openssl ca -batch -config "$work/ca.cnf" -cert authority.pem -keyfile "$work/authority.key" \
    -in "$work/$1.csr" -startdate "$3" -enddate "$4" -notext \
    -extfile <(printf 'subjectAltName=%s\n' "$2") -out "$1.pem" 2> /dev/null
}

sign destination 'DNS:localhost,DNS:destination.test,IP:127.0.0.1' 20200101000000Z 21260101000000Z
sign other 'DNS:other.test' 20200101000000Z 21260101000000Z
sign expired 'DNS:localhost,DNS:destination.test' 20200101000000Z 20210101000000Z

openssl req -new -key server.key -subj '/CN=self-signed' -out "$work/self-signed.csr"
openssl ca -batch -config "$work/ca.cnf" -selfsign -keyfile server.key \
  -in "$work/self-signed.csr" -startdate 20200101000000Z -enddate 21260101000000Z -notext \
  -extfile <(printf 'basicConstraints=critical,CA:TRUE\nsubjectAltName=DNS:localhost,DNS:destination.test\n') \
  -out self-signed.pem 2> /dev/null
