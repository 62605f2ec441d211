#!/bin/sh
# Checks a dashboard against Grafana's types: check.sh FOLDER-WITH-NODE-MODULES DASHBOARD
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
cp "$here/types.ts" "$folder/types.ts"
{
    echo "import type { Dashboard } from './types';"
    printf 'const dashboard: Dashboard = '
    cat "$2"
    echo ';'
    echo 'void dashboard;'
} >"$folder/dashboard.ts"
cd "$folder"
node_modules/.bin/tsc --noEmit --strict --skipLibCheck --module nodenext --moduleResolution nodenext --target es2022 dashboard.ts
