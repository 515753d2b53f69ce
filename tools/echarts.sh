#!/bin/sh
# Fetches a newer Apache ECharts, which reports embed. Run by hand; needs npm.
set -eu
VERSION=6.1.0
SHA256=b66b25aeb4df84e33199dc21694014d336d222cbd9deb0e5a7c14bd6aa0d0fd0

here=$(cd "$(dirname "$0")/../python/flashtwin/_report/echarts" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm pack --silent "echarts@$VERSION" >/dev/null
tar xzf "echarts-$VERSION.tgz"
echo "$SHA256  package/dist/echarts.min.js" | sha256sum -c -
cp package/dist/echarts.min.js package/LICENSE package/NOTICE "$here"
