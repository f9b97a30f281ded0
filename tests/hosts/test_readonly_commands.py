from __future__ import annotations

import pytest

from gaia_sessions.hosts.claude_code.readonly_commands import is_read_only

READING = """
ls
ls -la /tmp
/bin/ls
pwd
echo hello-from-alpha
exit 3
cat a b | grep -n x | head -5
cd /srv && ls 2>/dev/null || true
! grep -q x file
[ -f x ] && cat x
[[ -d x ]] ; test -r x
wc -l < in.txt
cat $HOME/x "$FILE" *.py {a,b}
grep -rn "foo > bar" src
set -euo pipefail; ls
tail -n 20 log # the end of it
echo done > /dev/null 2>&1
date -u +%F
date -d '2 days ago'
date -Iseconds
date -uIseconds
date -Ru
sort -u names | uniq -c
file a.bin
tree -L 2
rg --files -g '*.py'
fd -e py
find . -name '*.py' -not -path './x/*' -type f
find . \\( -name a -o -name b \\) -print
find . -name '*.py' | xargs grep -n foo
find . -print0 | xargs -0 -n 1 wc -l
xargs -I {} cat {}
sed -n '1,20p' file
sed -n 5p
sed 's/a b/c/g' file
sed -E 's|^x|y|'
sed '$d' file
awk '{print $1}' file
awk -v n=1 '{print n}' -
awk -F: '$3 == 0 {print $1}' /etc/passwd
command -v git
git status --short
git log --oneline -5
git -C repo --no-pager diff HEAD~1 -- a.py
git
git branch
git branch -a
git branch -v
git branch -vv
git branch -avv
git branch -a -v
git branch --list -v 'x*'
git branch --list 'x*'
git tag
git tag -l 'v*'
git stash list
git stash show -p
git stash show -p --stat stash@1
git remote -v
git remote get-url origin
git config --get user.name
git worktree list
git submodule status
git reflog
git reflog show main
python3 --version
terraform --help
terraform plan
terraform show
terraform output -json
kubectl get pods -o yaml
kubectl -n x get pods
kubectl --context=c --namespace x logs p
docker ps -a
pip list
npm ls
gaia-sessions update agent-1 -m finding=one
gaia-sessions usage agent-1 --charge 5
gaia-sessions skill add agent-1 terraform --tokens 5
gaia-sessions todo done agent-1 1
/opt/venv/bin/gaia-sessions --root /x get agent-1
gaia-sessions --root=/x list --active-only
[ -f "$FILE" ] && [ ! -d x ]
[ $# -eq 0 ]
[[ $n -ge 3 ]]
[[ $x == [a-z]* ]]
test -n "$X"
printf '%s' "$X"
cat a | uniq -c -
lsof -i :80
pip list --outdated
"""

CHANGING = """
rm x
ls; rm x
ls && make
ls | tee out
ls > out
cat a >> b
echo $(rm x)
cat <<END
(ls)
ls &
./ls
bin/cat x
/srv/cat x
$LS
X=1
PATH=. ls
LS=1 ls
env ls
sudo ls
bash -c ls
python3 -c 'print(6*7)'
python3 x.py --version
./configure --help
if true; then ls; fi
f() { ls; }
{ ls; }
exec ls
eval ls
alias ls=rm
make
touch x
cp a b
mv a b
mkdir x
chmod +x a
curl -o x http://localhost
date -s tomorrow
date -us tomorrow
date -Rus tomorrow
date --set=tomorrow
date 010100002026
sort -o out in
sort -uo out in
sort --output=out in
sort --out=out in
sort --compress-program=x in
uniq in out
file -C -m magic
tree -o out
tree -ao out
rg --pre x y
fd -x rm
fd -Hx rm
fd --exec rm
find . -delete
find . -name x -exec rm '{}' ';'
find . -execdir ls
find . -ok ls
find . -fprint out
find . -fls out
find . $WHAT
find . -{delete,print}
find . -name x | xargs rm
xargs sh -c ls
xargs -a in cat
sed -i s/a/b/ file
sed -i.bak s/a/b/ file
sed 's/a/b/w out' file
sed 's/a/b/e' file
sed 'w out' file
sed -n '1e rm x' file
sed -f script file
sed -e 's/a/b/' file
awk '{print > "out"}' file
awk '{print | "sh"}' file
awk 'BEGIN {system("rm x")}'
awk -f script file
awk -E script file
awk -o '{print}' file
awk -oout '{print}' file
awk -i inplace '{print}' file
command rm x
git commit -m x
git add .
git checkout main
git diff --output=x
git diff --outp x
git log --ext-diff
git -c core.pager=rm log
git branch new
git branch -v new
git branch -vv new
git branch -d old
git branch -D old
git branch -a new -D
git branch --list -D x
git tag v1
git tag -d v1
git tag -l -d v1
git stash
git stash pop
git stash -p
git stash push -p
git remote add x y
git remote -v update
git config user.name x
git config --get x --unset
git worktree add x
git reflog expire --all
git fetch
git push
git status $X
terraform apply
terraform plan -out=tfplan
terraform plan -generate-config-out=x
terraform plan --generate-config-out=x
terraform destroy
kubectl apply -f x
kubectl delete pod x
kubectl -n get delete pod
kubectl -n get
kubectl --server get apply
docker run x
docker
pip install x
npm install
gaia-sessions cleanup
gaia-sessions hooks install
gaia-sessions hooks uninstall --host codex
gaia-sessions doctor --fix
gaia-sessions --root /x cleanup
gaia-sessions resume agent-1
gaia-sessions
./gaia-sessions get agent-1
evil/gaia-sessions get agent-1
cat a | uniq - out.txt
uniq in -
tree -R -H . -L 1
date -us 2020-01-01
rg --hostname-bin=./evil x
rg --hostname-bin ./evil x
awk -d '{print}' file
awk -pout '{print}' file
awk '@include "x.awk"' file
awk '{f = "x"; @f($1)}' file
[[ -v 'a[$(touch P)]' ]]
[ -v 'a[$(touch P)]' ]
test -v 'a[$(touch P)]'
[[ 'a[$(touch P)]' -eq 0 ]]
printf -v 'a[$(touch P)]' x
printf -vx y
pip list --log f
pip list --log=f
pip list --local-log f
kubectl get pods --profile=cpu --profile-output=f
kubectl get pods --profile-output=f
lsof -D b/path
lsof -Db
"""


@pytest.mark.parametrize("command", READING.strip().splitlines())
def test_what_only_reads_is_known(command: str) -> None:
    assert is_read_only(command)


@pytest.mark.parametrize("command", CHANGING.strip().splitlines())
def test_everything_else_is_taken_to_change_something(command: str) -> None:
    assert not is_read_only(command)


def test_one_program_that_changes_something_is_enough() -> None:
    commands = ["ls", "cat x", "git status", "rm x", "pwd"]
    assert is_read_only("\n".join(commands[:3]))
    assert not is_read_only("\n".join(commands))


def test_nothing_reads() -> None:
    assert is_read_only("")
    assert is_read_only("!")
