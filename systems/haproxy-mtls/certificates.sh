#!/bin/sh
# One CA for the run and a certificate for each gateway, valid for a day.
set -eu
umask 077
openssl ecparam -name prime256v1 -genkey -noout -out ca.key
openssl req -x509 -new -key ca.key -subj /CN=skerry-lab -days 1 -out ca.crt
for name in exporter importer; do
  openssl ecparam -name prime256v1 -genkey -noout -out "$name.key"
  openssl req -new -key "$name.key" -subj "/CN=$name" -out "$name.csr"
  printf 'subjectAltName=DNS:%s\n' "$name" >"$name.ext"
  openssl x509 -req -in "$name.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 1 -extfile "$name.ext" -out "$name.crt"
  cat "$name.crt" "$name.key" >"$name.pem"
done
rm ca.key
