import type { Texts } from './texts.ts'

// The placeholder stays in Latin letters: the field runs from left to right, and so do the digits in it.
export const arabic: Texts = {
  language: 'ar',
  direction: 'rtl',
  title: 'بيانات البطاقة',
  labels: {
    number: 'رقم البطاقة',
    expiry: 'تاريخ الانتهاء',
    cvc: 'رمز الأمان',
    name: 'الاسم على البطاقة',
    'postal-code': 'الرمز البريدي',
    text: 'النص',
  },
  copy: 'نسخ',
  copied: 'تم النسخ',
  notCopied: 'تعذّر النسخ',
  placeholders: { expiry: 'MM / YY' },
  brandChoice: 'شبكة البطاقة',
  errors: {
    'number.missing': 'أدخل رقم البطاقة.',
    'number.incomplete': 'رقم البطاقة قصير جدًا.',
    'number.invalid': 'رقم البطاقة غير صالح. يُرجى التحقق منه.',
    'number.brand-not-accepted': 'بطاقات هذه الشبكة غير مقبولة هنا.',
    'expiry.missing': 'أدخل تاريخ الانتهاء.',
    'expiry.incomplete': 'أدخل شهر انتهاء البطاقة وسنته.',
    'expiry.invalid': 'تاريخ الانتهاء غير صالح. يُرجى التحقق منه.',
    'expiry.past': 'انتهت صلاحية البطاقة.',
    'cvc.missing': 'أدخل رمز الأمان.',
    'cvc.incomplete': 'رمز الأمان قصير جدًا.',
    'cvc.invalid': 'رمز الأمان أطول من اللازم لهذه البطاقة.',
    'name.missing': 'أدخل الاسم المكتوب على البطاقة.',
    'postal-code.missing': 'أدخل الرمز البريدي.',
    missing: 'املأ هذا الحقل.',
    'too-long': 'هذا النص طويل جدًا.',
  },
}
