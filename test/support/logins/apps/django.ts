import { freePort } from '../../listen.ts';
import { appFolder, type App, type RunningApp } from './app.ts';

const python = '/usr/bin/python3';
const account = { username: 'clerk', password: 'Ledger-of-1994' };
const totp = 'NRSWIZ3FOIQGSZBAMZUW4ZJANFZQ';

/** Django's own administration, server-rendered, in a language of its own. */
export const djangoAdmin: App = {
  name: 'django-admin',
  language: 'pl',
  about: 'server-rendered, dated session cookie, CSRF token',
  debian: { 'python3-django': '/usr/lib/python3/dist-packages/django/__init__.py' },
  start: () => startDjango('pl', false),
};

/** The same administration behind django-otp: user, password and code stand on one page. */
export const djangoOtp: App = {
  name: 'django-otp',
  language: 'en',
  about: 'server-rendered, a TOTP code on the same page as the password',
  debian: {
    'python3-django': '/usr/lib/python3/dist-packages/django/__init__.py',
    'python3-django-otp': '/usr/lib/python3/dist-packages/django_otp/__init__.py',
  },
  start: () => startDjango('en', true),
};

async function startDjango(language: string, otp: boolean): Promise<RunningApp> {
  const host = `127.0.0.1:${await freePort()}`;
  const folder = appFolder('django', {
    'site_settings.py': settings(language, otp),
    'site_urls.py': urls(otp),
    'site_user.py': user(otp),
    'site_forget.py':
      'import django; django.setup()\nfrom django.contrib.sessions.models import Session\nSession.objects.all().delete()\n',
  });
  const env = { DJANGO_SETTINGS_MODULE: 'site_settings', PYTHONPATH: folder.dir, PYTHONDONTWRITEBYTECODE: '1' };
  folder.exec(python, ['-m', 'django', 'migrate', '-v', '0'], env);
  folder.exec(python, ['site_user.py'], env);
  await folder.start(python, ['-m', 'django', 'runserver', '--noreload', '--insecure', host], [host], env);
  return {
    loginUrl: `http://${host}/admin/`,
    hosts: [host],
    values: account,
    ...(otp ? { totp } : {}),
    async loggedIn(page) {
      await page.goto(`http://${host}/admin/`);
      return !page.url().includes('/login/') && (await page.locator('#user-tools').count()) > 0;
    },
    endSessions: async () => void folder.exec(python, ['site_forget.py'], env),
    close: folder.close,
  };
}

const settings = (language: string, otp: boolean) => `
import os
SECRET_KEY = os.environ.get('SITE_KEY', 'not a secret: a site of a test')
DEBUG = True
ALLOWED_HOSTS = ['*']
ROOT_URLCONF = 'site_urls'
LANGUAGE_CODE = '${language}'
USE_I18N = True
STATIC_URL = '/static/'
DEFAULT_AUTO_FIELD = 'django.db.models.BigAutoField'
INSTALLED_APPS = ['django.contrib.admin', 'django.contrib.auth', 'django.contrib.contenttypes', 'django.contrib.sessions',
    'django.contrib.messages', 'django.contrib.staticfiles'${otp ? ", 'django_otp', 'django_otp.plugins.otp_totp'" : ''}]
MIDDLEWARE = ['django.contrib.sessions.middleware.SessionMiddleware', 'django.middleware.common.CommonMiddleware',
    'django.middleware.csrf.CsrfViewMiddleware', 'django.contrib.auth.middleware.AuthenticationMiddleware',
    ${otp ? "'django_otp.middleware.OTPMiddleware', " : ''}'django.contrib.messages.middleware.MessageMiddleware']
TEMPLATES = [{'BACKEND': 'django.template.backends.django.DjangoTemplates', 'APP_DIRS': True, 'OPTIONS': {'context_processors': [
    'django.template.context_processors.request', 'django.contrib.auth.context_processors.auth',
    'django.contrib.messages.context_processors.messages']}}]
DATABASES = {'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': os.path.join(os.path.dirname(__file__), 'site.db')}}
`;

const urls = (otp: boolean) => `
from django.contrib import admin
from django.urls import path
${otp ? 'from django_otp.admin import OTPAdminSite\nadmin.site.__class__ = OTPAdminSite' : ''}
urlpatterns = [path('admin/', admin.site.urls)]
`;

const user = (otp: boolean) => `
import base64, django; django.setup()
from django.contrib.auth.models import User
user = User.objects.create_superuser('${account.username}', 'clerk@office.example', '${account.password}')
${
  otp
    ? `from django_otp.plugins.otp_totp.models import TOTPDevice
secret = '${totp}'
key = base64.b32decode(secret + '=' * (-len(secret) % 8)).hex()
TOTPDevice.objects.create(user=user, name='phone', key=key)`
    : ''
}
`;
