"""Texts with and without secrets; the secrets are made at run time from a fixed seed."""

import base64
import json
import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "_-"
BASE64 = ALNUM + "+/"
HEX = "0123456789abcdef"
BASE32 = string.ascii_uppercase + "234567"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
BECH32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"

WORDS = (
    "correct",
    "horse",
    "battery",
    "staple",
    "copper",
    "lantern",
    "violet",
    "anchor",
    "ribbon",
    "gravel",
    "orbit",
)

Maker = Callable[[random.Random], str]


@dataclass(frozen=True)
class Example:
    """One text around one secret; `held_out` ones were written before any pattern was."""

    kind: str
    before: str
    secret: str
    after: str
    held_out: bool

    @property
    def text(self) -> str:
        return self.before + self.secret + self.after


def chars(rng: random.Random, alphabet: str, length: int) -> str:
    return "".join(rng.choices(alphabet, k=length))


def prefixed(prefix: str, alphabet: str, length: int) -> Maker:
    return lambda rng: prefix + chars(rng, alphabet, length)


def spelled(*parts: str | tuple[str, int]) -> Maker:
    """Literal pieces and (alphabet, length) pieces, one after another."""
    return lambda rng: "".join(part if isinstance(part, str) else chars(rng, *part) for part in parts)


def make_jwt(rng: random.Random) -> str:
    header = {"alg": "HS256", "typ": "JWT"}
    claims = {"sub": chars(rng, HEX, 12), "iat": rng.randrange(10**9, 2 * 10**9)}
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, claims)
    ]
    return ".".join([*parts, chars(rng, URLSAFE, 43)])


def make_pem(label: str, line_end: str = "\n", closed: bool = True) -> Maker:
    def make(rng: random.Random) -> str:
        lines = [chars(rng, BASE64, 64) for _ in range(6)] + [chars(rng, BASE64, 22) + "=="]
        head, tail = f"-----BEGIN {label}-----", f"-----END {label}-----"
        return line_end.join([head, *lines, *([tail] if closed else [])])

    return make


def make_password(rng: random.Random) -> str:
    word = rng.choice(["hunter", "walrus", "Sommer", "pepper", "Dragon", "maple", "Quartz"])
    return (
        word
        + rng.choice(["", "!", "_", "#"])
        + str(rng.randrange(10, 9999))
        + rng.choice(["", "!", "x", "$"])
    )


def make_hard_password(rng: random.Random) -> str:
    body = chars(rng, ALNUM, 6) + rng.choice("!@#$%^*") + chars(rng, ALNUM, 5)
    return "k" + body + "7"


def make_words(count: int) -> Maker:
    return lambda rng: " ".join(rng.choice(WORDS) for _ in range(count))


def make_basic(rng: random.Random) -> str:
    return base64.b64encode(f"admin:{make_hard_password(rng)}".encode()).decode()


def luhn_digit(digits: str) -> str:
    doubled = [int(d) * 2 if i % 2 == 0 else int(d) for i, d in enumerate(reversed(digits))]
    return str(-sum(d - 9 if d > 9 else d for d in doubled) % 10)


def make_card(rng: random.Random, separator: str = " ") -> str:
    digits = "4" + chars(rng, string.digits, 14)
    digits += luhn_digit(digits)
    return separator.join(digits[i : i + 4] for i in range(0, 16, 4))


def make_iban(country: str, length: int, separator: str = "") -> Maker:
    def make(rng: random.Random) -> str:
        account = chars(rng, string.digits, length - 4)
        rest = int("".join(str(int(c, 36)) for c in f"{account}{country}00")) % 97
        whole = f"{country}{98 - rest:02}{account}"
        return separator.join(whole[i : i + 4] for i in range(0, length, 4))

    return make


def make_zero_width(rng: random.Random) -> str:
    key = "sk-proj-" + chars(rng, URLSAFE, 60) + "a1"
    return "\u200b".join(key[i : i + 9] for i in range(0, len(key), 9))


MAKERS: dict[str, Maker] = {
    "openai": prefixed("sk-", ALNUM, 48),
    "openai_project": prefixed("sk-proj-", URLSAFE, 120),
    "anthropic": spelled("sk-ant-api03-", (URLSAFE, 93), "AA"),
    "openrouter": prefixed("sk-or-v1-", HEX, 64),
    "groq": prefixed("gsk_", ALNUM, 52),
    "huggingface": prefixed("hf_", string.ascii_letters, 34),
    "replicate": prefixed("r8_", ALNUM, 37),
    "perplexity": prefixed("pplx-", ALNUM, 48),
    "xai": prefixed("xai-", ALNUM, 80),
    "google": prefixed("AIza", URLSAFE, 35),
    "google_oauth": prefixed("GOCSPX-", URLSAFE, 28),
    "google_access": prefixed("ya29.", URLSAFE, 120),
    "github": prefixed("ghp_", ALNUM, 36),
    "github_server": prefixed("ghs_", ALNUM, 36),
    "github_fine": spelled("github_pat_", (ALNUM, 22), "_", (ALNUM, 59)),
    "gitlab": prefixed("glpat-", URLSAFE, 20),
    "gitlab_runner": prefixed("glrt-", URLSAFE, 20),
    "slack_bot": spelled("xoxb-", (string.digits, 12), "-", (string.digits, 12), "-", (ALNUM, 24)),
    "slack_user": spelled("xoxp-", (string.digits, 12), "-", (string.digits, 12), "-", (HEX, 32)),
    "slack_app": spelled("xapp-1-A", (BASE32, 10), "-", (string.digits, 13), "-", (HEX, 64)),
    "slack_hook": spelled("T", (BASE32, 8), "/B", (BASE32, 10), "/", (ALNUM, 24)),
    "aws_id": prefixed("AKIA", BASE32, 16),
    "aws_temporary": prefixed("ASIA", BASE32, 16),
    "aws_secret": prefixed("", BASE64, 40),
    "aws_session": prefixed("FwoGZXIvYXdzE", BASE64, 200),
    "azure_storage": spelled((BASE64, 86), "=="),
    "azure_sas": spelled((ALNUM, 40), "%2B", "k3D", "%3D"),
    "azure_client": spelled((ALNUM, 3), "8Q~", (URLSAFE, 33), "x"),
    "stripe": prefixed("sk_live_", ALNUM, 24),
    "stripe_restricted": prefixed("rk_live_", ALNUM, 99),
    "stripe_test": prefixed("sk_test_", ALNUM, 24),
    "stripe_hook": prefixed("whsec_", ALNUM, 32),
    "twilio": prefixed("SK", HEX, 32),
    "sendgrid": spelled("SG.", (URLSAFE, 22), ".", (URLSAFE, 43)),
    "npm": prefixed("npm_", ALNUM, 36),
    "pypi": prefixed("pypi-AgEIcHlwaS5vcmc", URLSAFE, 150),
    "docker": prefixed("dckr_pat_", URLSAFE, 27),
    "digitalocean": prefixed("dop_v1_", HEX, 64),
    "shepherd": spelled("shp_", (HEX, 12), "_", (URLSAFE, 43)),
    "shopify": prefixed("shpat_", HEX, 32),
    "telegram": spelled((string.digits[1:], 10), ":AA", (URLSAFE, 33)),
    "discord": spelled("M", (ALNUM, 25), ".", (ALNUM, 6), ".", (URLSAFE, 38)),
    "square": prefixed("sq0atp-", URLSAFE, 22),
    "mailgun": prefixed("key-", HEX, 32),
    "databricks": prefixed("dapi", HEX, 32),
    "atlassian": spelled("ATATT3xFfGF0", (URLSAFE, 170), "=", (string.hexdigits[:10], 8)),
    "linear": prefixed("lin_api_", ALNUM, 40),
    "notion": prefixed("ntn_", ALNUM, 46),
    "notion_old": prefixed("secret_", ALNUM, 43),
    "vault": prefixed("hvs.", URLSAFE, 90),
    "age": prefixed("AGE-SECRET-KEY-1", BECH32, 58),
    "jwt": make_jwt,
    "pem_rsa": make_pem("RSA PRIVATE KEY"),
    "pem_pkcs8": make_pem("PRIVATE KEY"),
    "pem_openssh": make_pem("OPENSSH PRIVATE KEY"),
    "pem_pgp": make_pem("PGP PRIVATE KEY BLOCK"),
    "pem_escaped": make_pem("PRIVATE KEY", line_end="\\n"),
    "pem_open": make_pem("EC PRIVATE KEY", closed=False),
    "pem_flat": make_pem("PRIVATE KEY", line_end=" "),
    "basic": make_basic,
    "opaque": prefixed("a9", URLSAFE, 38),
    "hex32": prefixed("e4", HEX, 30),
    "hex64": prefixed("0x7b", HEX, 62),
    "uuid": spelled((HEX, 8), "-", (HEX, 4), "-4", (HEX, 3), "-a", (HEX, 3), "-", (HEX, 12)),
    "password": make_password,
    "hard": make_hard_password,
    "words4": make_words(4),
    "words12": make_words(12),
    "pin": prefixed("", string.digits[1:], 4),
    "otp": prefixed("", string.digits[1:], 6),
    "card": make_card,
    "card_plain": lambda rng: make_card(rng, ""),
    "iban": make_iban("DE", 22),
    "iban_spaced": make_iban("FR", 27, " "),
    "iban_unbroken": make_iban("DE", 22, "\u00a0"),
    "ssn": spelled("2", (string.digits[1:], 2), "-", (string.digits[1:], 2), "-", (string.digits[1:], 4)),
    "ssn_plain": spelled("4", (string.digits[1:], 8)),
    "zero_width": make_zero_width,
    "base32": prefixed("JB", BASE32, 30),
    "xprv": prefixed("xprv9s21ZrQH143K", BASE58, 95),
    "bcrypt": spelled("$2b$12$", (ALNUM, 53)),
    "tailscale": spelled("tskey-auth-", (ALNUM, 12), "-", (ALNUM, 32)),
    "sentry": prefixed("sntryu_", HEX, 64),
    "supabase": prefixed("sbp_", HEX, 40),
    "figma": prefixed("figd_", URLSAFE, 40),
    "grafana": spelled("glsa_", (ALNUM, 32), "_", (HEX, 8)),
    "airtable": spelled("pat", (ALNUM, 14), ".", (HEX, 64)),
    "nvidia": prefixed("nvapi-", URLSAFE, 64),
    "langsmith": spelled("lsv2_pt_", (HEX, 32), "_", (HEX, 10)),
    "pinecone": spelled("pcsk_", (ALNUM, 6), "_", (ALNUM, 62)),
}

# (kind family for the report, maker, text with § where the secret stands)
Template = tuple[str, str, str]

HELD_OUT: list[Template] = [
    ("openai", "openai", "ok so here's my key §, can you check why I get a 401?"),
    ("openai", "openai_project", "OPENAI_API_KEY=§\nMODEL=gpt-4o-mini\n"),
    ("openai", "openai_project", '{"env": {"OPENAI_API_KEY": "§"}, "cwd": "/srv/app"}'),
    ("anthropic", "anthropic", 'client = Anthropic(api_key="§")'),
    ("anthropic", "anthropic", "curl https://api.anthropic.com/v1/messages -H 'x-api-key: §' -d @body.json"),
    ("other-llm", "groq", "I switched to groq (§) because it is faster."),
    ("other-llm", "huggingface", "huggingface-cli login --token §"),
    ("other-llm", "openrouter", "aider --openai-api-base https://openrouter.ai/api/v1 --openai-api-key §"),
    ("google", "google", "https://maps.googleapis.com/maps/api/geocode/json?address=Bonn&key=§"),
    ("google", "google_oauth", '"client_secret": "§", "redirect_uris": ["http://localhost"]'),
    ("github", "github", "git clone https://x-access-token:§@github.com/acme/widgets.git"),
    ("github", "github_fine", "export GH_TOKEN=§ && gh pr list"),
    ("github", "github_server", "remote: invalid credentials for §"),
    ("gitlab", "gitlab", "PRIVATE-TOKEN: §"),
    ("slack", "slack_bot", "SLACK_BOT_TOKEN: §"),
    ("slack", "slack_hook", 'curl -X POST https://hooks.slack.com/services/§ -d \'{"text":"hi"}\''),
    ("aws", "aws_id", "aws_access_key_id = §"),
    ("aws", "aws_secret", "[default]\naws_secret_access_key = §\nregion = eu-west-1"),
    ("aws", "aws_session", "export AWS_SESSION_TOKEN=§"),
    (
        "azure",
        "azure_storage",
        "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=§;EndpointSuffix=core.windows.net",
    ),
    (
        "azure",
        "azure_sas",
        "https://acme.blob.core.windows.net/c/x.csv?sv=2022-11-02&se=2026-01-01&sr=b&sp=r&sig=§",
    ),
    ("stripe", "stripe", "stripe.api_key = '§'"),
    ("stripe", "stripe_hook", "STRIPE_WEBHOOK_SECRET=§"),
    ("service-token", "sendgrid", "use § as the SMTP password with user apikey"),
    ("service-token", "npm", "//registry.npmjs.org/:_authToken=§"),
    ("service-token", "pypi", "[pypi]\nusername = __token__\npassword = §"),
    ("service-token", "docker", "echo § | docker login -u acme --password-stdin"),
    ("service-token", "telegram", "https://api.telegram.org/bot§/getUpdates"),
    ("service-token", "discord", "client.login('§')"),
    ("service-token", "linear", "my linear token: §"),
    ("service-token", "vault", "VAULT_TOKEN='§' vault kv get secret/app"),
    (
        "service-token",
        "databricks",
        "databricks configure --host https://acme.cloud.databricks.com with token §",
    ),
    ("service-token", "age", "# public key: age1examplepublickey\n§\n"),
    ("jwt", "jwt", "the cookie was session=§; Path=/; HttpOnly"),
    ("jwt", "jwt", "2026-03-01T10:00:00Z DEBUG auth token=§ user=17"),
    ("private-key", "pem_rsa", "here is my deploy key:\n§\nplease add it to the server"),
    (
        "private-key",
        "pem_escaped",
        '{"type": "service_account", "private_key": "§\\n", "client_email": "x@y.iam"}',
    ),
    ("private-key", "pem_open", "it printed\n§\n\nand then the terminal hung."),
    ("private-key", "pem_pgp", "gpg --export-secret-keys:\n§"),
    ("header", "opaque", "Authorization: Bearer §"),
    ("header", "basic", 'curl -H "Authorization: Basic §" https://example.com/private'),
    ("assignment", "password", "DB_PASSWORD=§"),
    ("assignment", "hard", "db:\n  user: app\n  password: §\n  host: db.internal"),
    ("assignment", "hard", "spring.datasource.password=§"),
    ("assignment", "opaque", 'api_key = "§"'),
    ("assignment", "hex32", "export SECRET_KEY=§"),
    ("assignment", "hard", '{"username": "bob", "password": "§", "remember": true}'),
    ("assignment", "password", "user: bob\npass: §"),
    ("assignment", "hard", "mysql -u root --password=§ shop"),
    ("assignment", "password", "<user>bob</user><password>§</password>"),
    ("speech", "password", "my password is §"),
    ("speech", "password", "The wifi password at the cabin is §, remember it for next summer."),
    ("speech", "words4", "the passphrase is §"),
    ("speech", "hard", "Can you log in for me? username is carla and the password is §."),
    ("speech", "password", "mein Passwort lautet §"),
    ("speech", "password", "mi contraseña es § y mi usuario es ana"),
    ("speech", "password", "I changed the router password to § yesterday"),
    ("pin", "pin", "my PIN is § by the way"),
    ("pin", "pin", "The alarm code is §."),
    ("url", "hard", "postgres://app:§@db.example.com:5432/shop"),
    ("url", "password", "set DATABASE_URL to mysql+pymysql://root:§@127.0.0.1/shop?charset=utf8mb4"),
    ("url", "opaque", "redis://:§@cache:6379/0"),
    (
        "connection-string",
        "hard",
        "Server=tcp:db.example.com,1433;Database=shop;User ID=sa;Pwd=§;Encrypt=True",
    ),
    ("card", "card", "book it with my card §, expiry 04/29"),
    ("seed", "words12", "my seed phrase: §"),
    ("obfuscated", "zero_width", "key: §"),
]

TUNED: list[Template] = [
    ("openai", "openai", "openai.api_key = '§'"),
    (
        "openai",
        "openai_project",
        "Incorrect API key provided: §. You can find your API key in the dashboard.",
    ),
    ("openai", "openai_project", "the log says Authorization: Bearer § and then 429"),
    ("openai", "openai", 'tool output: {"stdout": "KEY\\n§\\n"}'),
    ("openai", "openai", "我的密钥是§\uff0c帮我看看为什么报错"),
    ("openai", "openai_project", "\x1b[32m§\x1b[0m"),
    ("anthropic", "anthropic", "ANTHROPIC_API_KEY: §"),
    ("anthropic", "anthropic", "sure, the key is § (don't share it)"),
    ("anthropic", "anthropic", "-e ANTHROPIC_API_KEY=§ -p 8080:8080"),
    ("other-llm", "replicate", "REPLICATE_API_TOKEN=§"),
    ("other-llm", "perplexity", 'headers = {"Authorization": "Bearer §"}'),
    ("other-llm", "xai", "XAI_API_KEY=§"),
    ("other-llm", "nvidia", "nim key § expires in May"),
    ("other-llm", "langsmith", "LANGSMITH_API_KEY=§"),
    ("other-llm", "pinecone", "pc = Pinecone(api_key='§')"),
    ("other-llm", "huggingface", "https://user:§@huggingface.co/acme/model"),
    ("google", "google", "firebaseConfig = { apiKey: '§', projectId: 'acme' }"),
    (
        "google",
        "google_access",
        "curl -H 'Authorization: Bearer §' https://www.googleapis.com/drive/v3/files",
    ),
    ("google", "google_oauth", "GOOGLE_CLIENT_SECRET=§"),
    ("github", "github", "here's a PAT: §"),
    ("github", "github", "remote add origin https://§@github.com/acme/widgets.git"),
    ("github", "github_fine", "| token | § |"),
    ("github", "github", '{\\"GITHUB_TOKEN\\": \\"§\\"}'),
    ("gitlab", "gitlab_runner", "gitlab-runner register --token §"),
    ("gitlab", "gitlab", "https://oauth2:§@gitlab.com/acme/widgets.git"),
    ("slack", "slack_user", "token=§&channel=C024BE91L"),
    ("slack", "slack_app", "SLACK_APP_TOKEN='§'"),
    ("slack", "slack_hook", 'webhook: "https://hooks.slack.com/services/§"'),
    ("aws", "aws_temporary", '"AccessKeyId": "§",'),
    ("aws", "aws_secret", '"SecretAccessKey": "§",'),
    ("aws", "aws_secret", "AWS_SECRET_ACCESS_KEY=§\nAWS_REGION=eu-central-1"),
    ("aws", "aws_session", '"SessionToken": "§"'),
    ("aws", "aws_id", "https://b.s3.amazonaws.com/k?X-Amz-Credential=§%2F20260101%2Feu-west-1%2Fs3"),
    ("aws", "aws_id", "the user with key § was disabled"),
    ("azure", "azure_client", "AZURE_CLIENT_SECRET=§"),
    ("azure", "azure_client", "az login --service-principal -u app -p § --tenant acme"),
    (
        "azure",
        "azure_storage",
        "Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=§",
    ),
    ("stripe", "stripe_restricted", "we use the restricted key § in the worker"),
    ("stripe", "stripe_test", "STRIPE_KEY=§"),
    ("stripe", "stripe_hook", "endpoint_secret = '§'"),
    ("service-token", "twilio", "TWILIO_API_KEY=§"),
    ("service-token", "hex32", "TWILIO_AUTH_TOKEN=§"),
    ("service-token", "digitalocean", "doctl auth init -t §"),
    ("service-token", "shopify", "X-Shopify-Access-Token: §"),
    ("service-token", "square", "square token §, sandbox"),
    ("service-token", "mailgun", "curl -s --user 'api:§' https://api.mailgun.net/v3/x/messages"),
    ("service-token", "atlassian", "JIRA_TOKEN=§"),
    ("service-token", "notion", "NOTION_TOKEN=§"),
    ("service-token", "notion_old", "notion integration: §"),
    ("service-token", "tailscale", "tailscale up --authkey §"),
    ("service-token", "sentry", "sentry-cli --auth-token § releases list"),
    ("service-token", "supabase", "supabase login with §"),
    ("service-token", "figma", "X-Figma-Token: §"),
    ("service-token", "grafana", "GRAFANA=§"),
    ("service-token", "airtable", "airtable: §"),
    ("service-token", "telegram", "BotFather gave me § for the new bot"),
    ("service-token", "discord", "DISCORD_TOKEN=§"),
    ("service-token", "npm", "NPM_TOKEN=§ npm publish"),
    ("service-token", "uuid", "HEROKU_API_KEY=§"),
    ("service-token", "docker", "docker login -u acme -p §"),
    ("service-token", "vault", "Root Token: §"),
    ("service-token", "age", "age -d -i <(echo §) file.age"),
    ("jwt", "jwt", "Cookie: theme=dark; jwt=§; lang=en"),
    ("jwt", "jwt", 'localStorage.setItem("id_token", "§")'),
    ("jwt", "jwt", "https://app.example.com/magic?t=§"),
    ("private-key", "pem_pkcs8", "key = '''§'''"),
    ("private-key", "pem_openssh", "$ cat ~/.ssh/id_ed25519\n§\n$ ls"),
    ("private-key", "pem_flat", 'TLS_KEY="§"'),
    ("private-key", "pem_rsa", "apiVersion: v1\ndata:\n  tls.key: |\n    §\n"),
    ("private-key", "pem_open", "the file is cut off:\n§"),
    ("header", "opaque", "x-api-key: §"),
    ("header", "opaque", '-H "X-Auth-Token: §"'),
    ("header", "opaque", "proxy said 'Bearer §' was revoked"),
    ("header", "basic", '"Authorization": "Basic §"'),
    ("header", "opaque", "Authorization: Token §"),
    ("header", "hard", "curl -u admin:§ https://grafana.local/api/health"),
    ("assignment", "hard", "password = '§'"),
    ("assignment", "password", "passwd: §"),
    ("assignment", "password", "Password: §"),
    ("assignment", "password", "**Password:** §"),
    ("assignment", "password", "- password: `§`"),
    ("assignment", "hard", "MYSQL_ROOT_PASSWORD: §"),
    ("assignment", "hard", 'db.connect(host="db", user="app", password="§")'),
    ("assignment", "hard", "ALTER USER app WITH PASSWORD '§';"),
    ("assignment", "hard", "CREATE USER 'app'@'%' IDENTIFIED BY '§';"),
    ("assignment", "hard", "PGPASSWORD=§ psql -h db shop"),
    ("assignment", "hard", "sshpass -p '§' ssh root@10.0.0.4"),
    ("assignment", "hard", "machine api.example.com login bob password §"),
    ("assignment", "hard", '{\\"password\\": \\"§\\", \\"user\\": \\"bob\\"}'),
    ("assignment", "hex32", "client_secret: §"),
    ("assignment", "hex32", "clientSecret: '§',"),
    ("assignment", "opaque", "JWT_SECRET=§"),
    ("assignment", "opaque", "signing_key: §"),
    ("assignment", "opaque", "const apiKey = `§`;"),
    ("assignment", "opaque", "https://api.example.com/v1/items?access_token=§&page=2"),
    ("assignment", "hex32", "?api_key=§"),
    ("assignment", "hex64", "PRIVATE_KEY=§"),
    ("assignment", "base32", "otpauth://totp/Acme:bob?secret=§&issuer=Acme"),
    ("assignment", "password", "wifi: GuestNet / pw: §"),
    ("assignment", "hard", "<add key='x'/><dbPassword>§</dbPassword>"),
    ("assignment", "hard", "dbPass=§"),
    ("assignment", "password", "пароль: §"),
    ("assignment", "password", "密码\uff1a§"),
    ("speech", "password", "the password's § in case you need it"),
    ("speech", "password", "My Netflix password is §!"),
    ("speech", "password", 'password is "§", with a capital letter'),
    ("speech", "password", "Remember that the admin password was § before the move."),
    ("speech", "password", "the password for the staging server is §"),
    ("speech", "password", "please use § as the password for the demo account"),
    ("speech", "password", "log in as bob with password § and check the mail"),
    ("speech", "password", "set my password to §, thanks"),
    ("speech", "password", "mon mot de passe est §"),
    ("speech", "password", "minha senha é §"),
    ("speech", "password", "la mia password è §"),
    ("speech", "password", "我的密码是§"),
    ("speech", "password", "パスワードは§です"),
    ("speech", "opaque", "the api key is §"),
    ("speech", "hex32", "their token is § if you want to try"),
    ("speech", "words4", "my passphrase for the backup drive is §, keep it safe"),
    ("speech", "words4", "passphrase: §"),
    ("speech", "password", "my password is: §"),
    ("speech", "password", "Password:\n§\n"),
    ("speech", "hex32", "here is the api key §"),
    ("speech", "opaque", "the Mistral key is §"),
    ("pin", "pin", "PIN: §"),
    ("pin", "pin", "the pin for my debit card is §"),
    ("pin", "pin", "Gate code: §"),
    ("pin", "otp", "Your verification code is §"),
    ("url", "hard", "mongodb+srv://app:§@cluster0.example.mongodb.net/?retryWrites=true"),
    ("url", "hard", "amqp://guest:§@rabbit:5672//"),
    ("url", "hard", "https://bob:§@files.example.com/backup.zip"),
    ("url", "opaque", "https://§@sentry.example.com/42"),
    ("url", "hard", 'engine = create_engine("postgresql://shop:§@localhost/shop")'),
    ("connection-string", "hard", "Data Source=db;Initial Catalog=shop;User Id=sa;Password=§;"),
    ("connection-string", "hard", "host=db port=5432 dbname=shop user=app password=§ sslmode=require"),
    ("connection-string", "hard", "jdbc:mysql://db/shop?user=app&password=§&useSSL=true"),
    ("card", "card_plain", "card number: §"),
    ("card", "card", "Visa §"),
    ("account", "iban", "My IBAN is §, please use it for the refund."),
    ("account", "iban_spaced", "Virement sur § avant vendredi"),
    ("account", "iban", "IBAN:§"),
    ("account", "iban_unbroken", "Bitte auf § überweisen"),
    ("account", "ssn", "my social security number is §"),
    ("account", "ssn", "§ is what the form wants"),
    ("account", "ssn_plain", "SSN: §"),
    ("cookie", "hex32", "Cookie: sessionid=§; theme=dark"),
    ("cookie", "hex32", "Set-Cookie: connect.sid=§; Path=/; HttpOnly"),
    ("cookie", "opaque", "my session cookie is §"),
    ("cookie", "hex32", "curl -b 'session=§' https://shop.example.com/cart"),
    ("cookie", "hex32", 'curl --cookie "lang=en; auth=§" https://shop.example.com/cart'),
    ("cookie", "hex32", "PHPSESSID=§"),
    ("cookie", "hex32", 'document.cookie = "sid=§"'),
    ("speech", "password", "a minha palavra-passe é §"),
    ("assignment", "password", "palavra-passe: §"),
    ("assignment", "password", "db pass: §"),
    ("assignment", "password", "USER: bob\nPASS: §"),
    ("seed", "words12", "the recovery phrase is §"),
    ("seed", "xprv", "wallet root: §"),
    ("hash", "bcrypt", "bob:§"),
    ("obfuscated", "zero_width", "I hid it: § ok?"),
    ("service-token", "shepherd", "why does § get a 401?"),
    ("service-token", "shepherd", 'OpenAI(base_url="http://localhost:8765/v1", api_key="§")'),
]


def read_lines(name: str) -> list[str]:
    return (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()


def leaks(example: Example, redacted: str) -> bool:
    """Whether six characters in a row of the secret, or all of a shorter one, are still there."""
    rest = re.sub(r"\[redacted:[a-z0-9-]+\]", "\n", redacted)
    size = min(6, len(example.secret))
    parts = {example.secret[i : i + size] for i in range(len(example.secret) - size + 1)}
    return any(part in rest and part not in example.before + example.after for part in parts)


def build(templates: list[Template], held_out: bool, seed: int) -> list[Example]:
    rng = random.Random(seed)
    return [build_one(rng, template, held_out) for template in templates]


def build_one(rng: random.Random, template: Template, held_out: bool) -> Example:
    kind, maker, text = template
    before, after = text.split("§")
    return Example(kind, before, MAKERS[maker](rng), after, held_out)


POSITIVES = build(HELD_OUT, True, 20260101) + build(TUNED, False, 20260102)
NEGATIVES_HELD_OUT = read_lines("redaction_negatives_held_out.txt")
NEGATIVES_TUNED = read_lines("redaction_negatives.txt")
NEGATIVES = NEGATIVES_HELD_OUT + NEGATIVES_TUNED
