#!/bin/sh
# A fabric for the run, and a gateway for each side of it. Gateways read resources from
# folders.
set -eu
skerry fabric init ca --name lab.skerry.dev
for cluster in exporter importer; do
  skerry fabric peer "$cluster" --ca ca --out "$cluster-authority"
  skerry fabric gateway g1 --peer "$cluster-authority" --out "$cluster"
  mkdir "$cluster-resources"
  mv "$cluster.yaml" "$cluster-resources"
done
rm -r ca exporter-authority importer-authority
